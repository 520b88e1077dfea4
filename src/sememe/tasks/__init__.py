"""Fine-tuning: an encoder and labelled rows in, a task that predicts out."""
