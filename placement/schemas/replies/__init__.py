"""The replies of Placement's endpoints: one module for each noun, named as those of the handlers."""
