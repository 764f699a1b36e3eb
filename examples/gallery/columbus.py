"""Crime in Columbus: known, predicted, true

The crime rate of every third of 49 neighbourhoods is hidden (left), predicted
(middle) and compared with the truth (right).
"""

import geopandas
from libpysal import examples
from matplotlib import pyplot as plt

import graphmrf as gm

areas = geopandas.read_file(examples.get_path("columbus.shp"))
known = areas["CRIME"].mask(areas.index % 3 == 0)

model = gm.ResidualPropagation(gm.LinearGraphConvolution())
model.fit(gm.Graph.from_polygons(areas), areas[["INC", "HOVAL"]], known)
areas["known"] = known
areas["predicted"] = model.predict()

figure, axes = plt.subplots(1, 3, figsize=(9, 3))
hidden = {"color": "none", "edgecolor": "grey", "hatch": "///", "linewidth": 0.3}
for axis, column in zip(axes, ("known", "predicted", "CRIME"), strict=True):
    areas.plot(column, vmin=0, vmax=70, missing_kwds=hidden, ax=axis)
    axis.set_title("true" if column == "CRIME" else column)
    axis.set_axis_off()
