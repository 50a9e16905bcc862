"""Search: the entries of memory and its archive that answer a query or a prompt."""
