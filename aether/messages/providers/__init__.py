"""Provider formats: one module each reads, writes, checks and repairs messages; `Provider` in `convert` is the contract."""
