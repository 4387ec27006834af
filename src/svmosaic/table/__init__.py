"""Tables: reading them, preparing their columns, and the model file that carries the preparation along."""
