"""The paper behind graphmrf: its data sets by name, its experiments, and the published numbers beside ours."""
