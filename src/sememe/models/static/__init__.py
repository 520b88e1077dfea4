"""Static models: one vector per word. Each has fast kernels and a plain reference."""
