"""A time series is a graph, too: gaps filled in

Each month is joined to the next. In the gaps, error bars widen with the
distance to the nearest known value.
"""

import numpy as np
from matplotlib import pyplot as plt

import graphmrf as gm

months = np.arange(180)
rng = np.random.default_rng(1)
series = 10 + 3 * np.sin(months / 9) + rng.normal(scale=0.3, size=180)
known = series.copy()
known[20:35] = known[60:64] = known[120:140] = np.nan

path = gm.Graph.from_edges(months[:-1], months[1:])
model = gm.GraphRegressor().fit(path, None, known)
lower, upper = model.predict_interval(0.9)

figure, axis = plt.subplots(figsize=(7, 2.8))
axis.fill_between(months, lower, upper, alpha=0.3, label="90 % interval")
axis.plot(months, model.predict(), label="predicted")
axis.plot(months, known, "k.", markersize=4, label="known")
axis.plot(months[np.isnan(known)], series[np.isnan(known)], "r.", markersize=3, label="hidden")
axis.set_xlabel("month")
axis.legend(ncols=4, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1))
