"""Sources: transcript formats that can be imported, and the entries that hooks spool; each becomes records."""
