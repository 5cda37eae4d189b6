"""The tables of documents, by subject: each is rows of cells, made from result files."""
