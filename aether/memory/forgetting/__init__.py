"""Finding, forgetting and erasing what memory holds."""
