"""House prices in Baltimore: intervals of a skewed outcome

With `transform="log"` intervals are short for cheap houses, long for expensive
ones, and never below zero.
"""

import geopandas
import numpy as np
from libpysal import examples
from matplotlib import pyplot as plt

import graphmrf as gm

houses = geopandas.read_file(examples.get_path("baltim.shp"))
graph = gm.Graph.from_knn(houses[["X", "Y"]], k=8)
features = houses[["NROOM", "NBATH", "PATIO", "FIREPL", "AC", "LOTSZ", "SQFT"]]
hidden = houses.index % 3 == 0
known = houses["PRICE"].mask(hidden)

model = gm.GraphRegressor(transform="log").fit(graph, features, known)
mean, (lower, upper) = model.predict(), model.predict_interval(0.9)
order = mean[hidden].sort_values().index

figure, axis = plt.subplots(figsize=(6.5, 3.2))
ranks = np.arange(len(order))
axis.fill_between(ranks, lower[order], upper[order], alpha=0.3, label="90 % interval")
axis.plot(ranks, mean[order], label="predicted")
axis.plot(ranks, houses["PRICE"][order], "k.", markersize=4, label="true price")
axis.set(xlabel="70 houses whose price was hidden, by predicted price", ylabel="thousand dollars", ylim=(0, None))
axis.legend()
