"""Operations: one function for each thing a caller can ask for.

They find the home, read the clock, call one pure function and commit; what the rest of aether decides,
they carry out.
"""
