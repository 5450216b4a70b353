"""What every part may use: how files are written, and whose files are believed."""
