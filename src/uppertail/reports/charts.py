"""The charts of a report, without their data, as Vega-Lite has them."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from uppertail.analysis.figures import COLOURS
from uppertail.reports.outcomes import FIRST, KEPT, SOLVED

DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2])
START, END, NOW = alt.ExprRef("start"), alt.ExprRef("end"), "now"
"""The stretch of episodes that is shown, and the moment."""

Spec = dict[str, Any]


def charts(methods: Sequence[str], actions: int) -> dict[str, Spec]:
    """Every chart of an environment's section by its name.

    Args:
        methods: the names of the methods, in order.
        actions: number of actions.
    """
    look, narrow = (_look("m", list(methods), "method", columns) for columns in (2, 1))
    acts = _look("a", list(range(actions)), "action")
    return {
        "curves": _curves(look),
        "explore": _spec(_follows(_lines("explore", "x", "exploratory share", look), now=False), 150),
        **{
            name: _survival(name, what, narrow, follows)
            for name, what, follows in (("first", FIRST, True), ("solved", SOLVED, True), ("kept", KEPT, False))
        },
        "upper": _series("upper", "upper bound of each action", acts),
        "gap": _series("gap", "gap between the two highest", None),
        "age": _series("age", "age: steps since it was last taken", acts, "symlog"),
        "count": _series("count", "number of data", acts, "symlog"),
        "density": _density(acts),
        "policies": _policies(),
        "grid": _grid(),
    }


def _look(field: str, values: list[Any], title: str, columns: int = 2) -> dict[str, Any]:
    """Colour and dash of each value: no two differ by colour alone."""
    colours = [COLOURS[number % len(COLOURS)] for number in range(len(values))]
    dashes = [list(DASHES[number % len(DASHES)]) for number in range(len(values))]
    legend = alt.Legend(
        orient="top",
        title=title,
        columns=columns,
        labelLimit=260,
        symbolStrokeWidth=3,
        symbolOpacity=1,
        symbolType="stroke",
    )
    return {
        "color": alt.Color(f"{field}:N", scale=alt.Scale(domain=values, range=colours), legend=legend),
        "strokeDash": alt.StrokeDash(f"{field}:N", scale=alt.Scale(domain=values, range=dashes), legend=legend),
    }


def _x(follows: bool = True, title: str = "episode") -> alt.X:
    scale = alt.Scale(domain=[START, END], nice=False, clamp=False) if follows else alt.Scale(zero=True)
    return alt.X("e:Q", title=title, scale=scale, axis=alt.Axis(grid=False, tickMinStep=1, labelFlush=True))


def _data(name: str) -> Any:
    return alt.Chart(alt.NamedData(name=name))


def _lines(name: str, field: str, title: str, look: dict[str, Any]) -> Any:
    line = _data(name).mark_line(clip=True, strokeWidth=2, point=alt.OverlayMarkDef(size=18))
    return line.encode(_x(), alt.Y(f"{field}:Q", title=title), **look)


def _curves(look: dict[str, Any]) -> Spec:
    brush = alt.selection_interval(name="brush", encodings=["x"])
    x = alt.X("e:Q", title="episode", axis=alt.Axis(grid=False, tickMinStep=1), scale=alt.Scale(nice=False))
    title = "return (mean of the last 50)"
    y = alt.Y("v:Q", title=title)
    band = _data("curves").mark_area(opacity=0.2).encode(x, alt.Y("l:Q", title=title), y2="h:Q", color=look["color"])
    line = _data("curves").mark_line(strokeWidth=2.2).encode(x, y, **look)
    each = _data("seeds").mark_line(strokeWidth=1, opacity=0.55).encode(x, y, detail="s:N", color=look["color"])
    return _spec(alt.layer(band.add_params(brush), line, each), 260)


def _survival(name: str, what: str, look: dict[str, Any], follows: bool) -> Spec:
    x = _x(follows, "episode" if follows else "episodes after it was solved")
    title = "share of seeds left"
    y = alt.Y("v:Q", title=title, scale=alt.Scale(domain=[0, 1]))
    band = _data(name).mark_area(opacity=0.15, interpolate="step-after", clip=True)
    bands = band.encode(x, alt.Y("l:Q", title=title), y2="h:Q", color=look["color"])
    line = _data(name).mark_line(interpolate="step-after", clip=True, strokeWidth=2.2).encode(x, y, **look)
    layers = alt.layer(bands, line).properties(title=f"not yet: {what}" if follows else "solved, and not fallen")
    return _spec(_follows(layers, now=False) if follows else layers, 170)


def _series(name: str, title: str, look: dict[str, Any] | None, scale: str = "linear") -> Spec:
    y = alt.Y("v:Q", title=None, scale=alt.Scale(type=scale, zero=False), axis=alt.Axis(tickCount=4))  # pyright: ignore
    mark = _data(name).mark_line(clip=True, interpolate="step-after", strokeWidth=2, color=COLOURS[0])
    return _spec(_follows(mark.encode(_x(), y, **(look or {})).properties(title=title)), 150)


def _follows(chart: Any, now: bool = True) -> Any:
    """Shows the stretch of episodes that is brushed, and a rule at the moment of the slider."""
    stretch = [alt.param(name="start", value=0), alt.param(name="end", value=1)]
    if not now:
        return chart.add_params(*stretch)
    rule = _data("now").mark_rule(color="#555", strokeDash=[3, 3], clip=True).encode(_x())
    return alt.layer(chart, rule).add_params(*stretch)


def _density(look: dict[str, Any]) -> Spec:
    params = [
        alt.param(name="labels", value=[]),
        alt.param(name="rows", value=1),
        alt.param(name="low", value=0),
        alt.param(name="high", value=1),
    ]
    scale = alt.Scale(domain=[alt.ExprRef("low"), alt.ExprRef("high")], nice=False, zero=False)
    x = alt.X("x:Q", title="return", scale=scale)
    axis = alt.Axis(labelExpr="labels[-datum.value]", tickMinStep=1, ticks=False, domain=False, title="state")
    y = alt.Y("y:Q", scale=alt.Scale(domain=[alt.ExprRef("0.15 - rows"), 1], nice=False), axis=axis)
    exact = _data("exact").mark_rule(clip=True, strokeWidth=7, color="#999", opacity=0.55).encode(x, y, y2="top:Q")
    area = _data("heights").mark_area(clip=True, opacity=0.35, line={"strokeWidth": 1.8})
    areas = area.encode(x, y, y2="top:Q", color=look["color"], detail=["s:N", "a:N"])
    means = _data("bounds").mark_tick(clip=True, thickness=2.5, size=14).encode(x, y, color=look["color"])
    high = _data("bounds").mark_point(clip=True, shape="triangle-down", filled=True, size=55, opacity=0.95)
    bounds = high.encode(alt.X("upper:Q", title="return", scale=scale), y, color=look["color"])
    return _spec(alt.layer(exact, areas, means, bounds).add_params(*params), 300)


def _policies() -> Spec:
    x = alt.X("p:N", title=None, sort=None, axis=alt.Axis(orient="top", labelAngle=-35, labelLimit=140))
    y = alt.Y("s:O", title="state", sort=None)
    colour = alt.Color("v:Q", scale=alt.Scale(domain=[0, 1], scheme="blues"), legend=None)
    cells = _data("shares").mark_rect(stroke="white").encode(x, y, colour)
    number = alt.condition("datum.v > 0.55", alt.value("white"), alt.value("#222"))
    texts = _data("shares").mark_text(fontSize=10).encode(x, y, alt.Text("v:Q", format=".2f"), color=number)
    return _spec(alt.layer(cells, texts), 300)


def _grid() -> Spec:
    params = [alt.param(name="low", value=0), alt.param(name="high", value=1), alt.param(name="logged", value=False)]
    blank = alt.Axis(labels=False, ticks=False, domain=False, title=None)
    x, y = alt.X("c:O", axis=blank), alt.Y("r:O", axis=blank)
    legend = alt.Legend(
        orient="bottom",
        title=None,
        labelExpr="logged ? format(exp(datum.value) - 1, '.2~s') : format(datum.value, '.2f')",
    )
    scale = alt.Scale(domain=[alt.ExprRef("low"), alt.ExprRef("high")], scheme="blues", nice=False)
    tips = [alt.Tooltip("s:Q", title="state"), "visits:Q", "upper:Q"]
    colour = alt.Color("v:Q", scale=scale, legend=legend)
    cells = _data("cells").mark_rect(stroke="white", strokeWidth=0.5).encode(x, y, colour, tooltip=tips)
    ink = alt.condition("(datum.v - low) / (high - low) > 0.55", alt.value("white"), alt.value("#222"))
    texts = _data("cells").mark_text(fontSize=11, fontWeight="bold").encode(x, y, alt.Text("arrow:N"), color=ink)
    return _spec(alt.layer(cells, texts).add_params(*params), 200)


def _spec(chart: Any, height: int) -> Spec:
    """A chart as wide as there is room, whose data come later."""
    spec = chart.properties(width="container", height=height).to_dict(validate=True)
    spec.pop("$schema", None)
    spec["config"] = {"view": {"stroke": None}, "axis": {"gridColor": "#eee"}, "font": "sans-serif"}
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    return spec
