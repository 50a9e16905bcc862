"""One function per thing a caller can ask for; the words of the command line."""
