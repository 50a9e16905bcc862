"""Archive: conversations that lose detail in steps as they age, important ones later, and what must be kept never.

Pure: a conversation and an instant in, a level, a score or a form out. Files, grace and receipts are in `store.archive_store` and
`api.archive`.
"""
