"""The figures of the paper, one file each, made again by `python -m experiments run paper NAME`."""

FIGURES = {
    "toy": "Fig. 1 and its full page: Gaussian distributions on the Toy, from wide to narrow",
    "chain": "Fig. 2: learning curves on randomized Chains of lengths 10, 25, 50, 100",
    "frozen-lake": "Fig. 3: Thompson sampling against epsilon-greedy on FrozenLake 8x8",
    "chain-domain": "the drawing of the Chain",
    "chain-distributions": "categorical distributions along a Chain of length 7, at three moments",
    "policy-evaluation": "not in the paper: learned distributions compared with the exact ones",
    "uncertainties": "not in the paper: what an ensemble does not know and what is chance, along a run",
}
"""Name to purpose. The module of a figure has three functions.

`cells(quick)` lists what is computed, `finish(folder, results, quick)` draws it and returns the numbers for
summary.json, `table(summary)` returns some of these numbers as rows, headings as keys.
"""
