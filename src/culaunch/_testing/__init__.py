"""Tests on both drivers: arrays, drivers, checks of the emulator, reports."""
