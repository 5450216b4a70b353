"""The parts of any kernel's call: parameters, arguments, choices, messages."""
