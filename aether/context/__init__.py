"""Context: long conversations, with checkpoints that age, goals that stay, and a guard before everything that is sent."""
