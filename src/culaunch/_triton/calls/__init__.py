"""What a call of any kernel has: parameters, arguments, what is chosen, what is wrong."""
