"""Known values that surprise

Each known value is compared with its leave-one-out prediction. Clarke County
stands out, home of the University of Georgia: students count as poor, and no
column describes students.
"""

import geopandas
from libpysal import examples
from matplotlib import pyplot as plt

import graphmrf as gm

counties = geopandas.read_file(examples.get_path("G_utm.shp")).set_index("AreaKey")
features = counties[["PctRural", "PctBach", "PctEld", "PctFB", "PctBlack"]]
known = counties["PctPov"].copy()
known[::5] = None

model = gm.GraphRegressor().fit(gm.Graph.from_polygons(counties), features, known)
checked = model.loo_
counties["z"] = (checked["label"] - checked["prediction"]) / checked["std"]

figure, axis = plt.subplots(figsize=(4.5, 4))
missing = {"color": "lightgrey"}
counties.plot("z", cmap="RdBu_r", vmin=-3, vmax=3, legend=True, missing_kwds=missing, ax=axis)
clarke = counties.geometry[13059].centroid
axis.annotate(
    "Athens", (clarke.x, clarke.y), xytext=(20, 25), textcoords="offset points", arrowprops={"arrowstyle": "-"}
)
axis.set_title("leave-one-out residual, in standard deviations")
axis.set_axis_off()
