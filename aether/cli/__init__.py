"""The command line: parse, call one operation, report the result. One module per feature."""
