"""The driver API over the emulated device: one method for each function of the table."""
