"""Poverty in Georgia: predicted against observed

The poverty rate of every fifth of 159 counties is hidden and predicted. Each
dot is one of them, each bar its 90 % interval.
"""

import geopandas
from libpysal import examples
from matplotlib import pyplot as plt

import graphmrf as gm

counties = geopandas.read_file(examples.get_path("G_utm.shp"))
features = counties[["PctRural", "PctBach", "PctEld", "PctFB", "PctBlack"]]
hidden = counties.index % 5 == 0
known = counties["PctPov"].mask(hidden)

model = gm.GraphRegressor().fit(gm.Graph.from_polygons(counties), features, known)
truth, mean = counties["PctPov"][hidden], model.predict()[hidden]
lower, upper = (end[hidden] for end in model.predict_interval(0.9))
inside = int(((lower <= truth) & (truth <= upper)).sum())

figure, axis = plt.subplots(figsize=(4.5, 4))
axis.vlines(truth, lower, upper, color="tab:blue", alpha=0.3)
axis.plot(truth, mean, "o", markersize=4)
axis.axline((20, 20), slope=1, color="grey", linewidth=1)
axis.set(xlabel="observed, %", ylabel="predicted, %")
axis.set_title(f"{inside} of {len(truth)} counties are inside")
