"""Times of launches."""
