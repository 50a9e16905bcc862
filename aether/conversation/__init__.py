"""Conversations: an append-only history, shown as parts, each whole or reduced to a level of detail.

Pure: messages and a policy in, a plan, a text or a smaller list out. Fitting a window, checkpoints that age and archive forms
that age are policies over the same parts and summariser. `aether.api` asks models and writes to disk.
"""
