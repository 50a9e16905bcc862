"""Context: a conversation that goes on for ever in any window, by checkpoints that age, goals and a guard before sending.

Pure. A checkpoint is a message of the conversation's log that a compaction step made, so undo, the recall tool, `doctor`
and crash safety cover it. The log is read and written in `aether.api.context`.
"""
