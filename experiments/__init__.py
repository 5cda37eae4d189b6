"""Where the numbers of README and docs come from: what is run, by which code, and what is told of it."""
