"""Other programs and other methods on the same tasks; some run in environments of their own."""
