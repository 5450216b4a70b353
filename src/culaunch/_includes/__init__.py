"""What a compiler will read of the disk: found in the text, without running the compiler."""
