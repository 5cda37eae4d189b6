"""A learned policy as a file that other programs run: ONNX, or NumPy arrays with a short loader."""
