"""What a session is given of its memory."""
