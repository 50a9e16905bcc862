"""The command line: parse, call one operation, say what it did. One module per noun."""
