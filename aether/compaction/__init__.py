"""Compaction: a message list made to fit a budget, with everything that matters still in it.

Pure: messages and a policy in, a plan or a compacted list out. Who asks a model and who writes to disk is
`aether.api.compact`.
"""
