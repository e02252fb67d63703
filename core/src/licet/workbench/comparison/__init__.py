"""What two policies differ in, in words, and which of them is the stricter."""
