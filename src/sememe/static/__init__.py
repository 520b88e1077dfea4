"""Static models: one vector a word. Each has fast kernels and a plain reference beside them."""
