"""Message formats: each module reads and writes one provider's spelling, losslessly."""
