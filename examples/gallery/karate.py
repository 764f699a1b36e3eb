"""Who sides with whom: two labels for a whole club

Zachary's karate club split in two. Only the sides of the instructor (0) and
the president (33) are known; those of the others are predicted from who met
whom.
"""

import networkx as nx
import numpy as np
from matplotlib import pyplot as plt

import graphmrf as gm

club = nx.karate_club_graph()
side = np.full(len(club), np.nan)
side[[0, 33]] = 1, -1

model = gm.LabelPropagation(alpha=0.99).fit(club, None, side)
side_of = model.predict()
truth = np.array([1 if club.nodes[n]["club"] == "Mr. Hi" else -1 for n in club])
right = (np.sign(side_of) == truth).sum()

figure, axis = plt.subplots(figsize=(4.5, 4))
places = nx.spring_layout(club, seed=4)
nx.draw_networkx_edges(club, places, alpha=0.2, ax=axis)
nx.draw_networkx_nodes(club, places, node_color=side_of, cmap="PiYG", vmin=-1, vmax=1, node_size=120, ax=axis)
axis.set_title(f"{right} of {len(club)} are right")
axis.set_axis_off()
