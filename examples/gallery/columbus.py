"""Crime in Columbus: known, predicted, how uncertain

Every third of 49 neighbourhoods has lost its crime rate. The map in the middle
puts it back, the one on the right says how sure that is.
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
areas["predicted"], areas["std"] = model.predict(return_std=True)

figure, axes = plt.subplots(1, 3, figsize=(9, 3))
hidden = {"color": "none", "edgecolor": "grey", "hatch": "///", "linewidth": 0.3}
areas.plot("known", vmin=0, vmax=70, missing_kwds=hidden, ax=axes[0])
areas.plot("predicted", vmin=0, vmax=70, ax=axes[1])
areas["std"] = areas["std"].where(known.isna())
areas.plot("std", cmap="Purples", legend=True, missing_kwds={"color": "whitesmoke"}, ax=axes[2])
for axis, title in zip(axes, ("known", "predicted", "standard deviation"), strict=True):
    axis.set_title(title)
    axis.set_axis_off()
