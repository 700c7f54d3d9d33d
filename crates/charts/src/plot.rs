//! A panel with two axes, drawn as SVG.

use std::fmt::Display;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    Cartesian2d, ChartBuilder, ChartContext, Circle, Color, DrawingArea, IntoDrawingArea, IntoFont,
    PathElement, Rectangle, SVGBackend, ShapeStyle, Text, TextStyle,
};
use plotters::series::DashedLineSeries;
use plotters::style::{RGBColor, TRANSPARENT};

use crate::clip::{Panel, Point};
use crate::palette;
use crate::words::plain;

/// Width of every picture, in its own pixels; a page scales it.
const WIDTH_PIXELS: u32 = 760;

/// Size of text; the library makes 12.9 pixels of it (it divides by 1.24).
const TEXT_SIZE: u32 = 16;

/// Width of a character of this size, at least.
const CHARACTER_PIXELS: i32 = 8;

/// Height of the row of names.
const LEGEND_PIXELS: u32 = 24;

/// A picture that could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("can't draw: {0}")]
pub struct PlotError(String);

impl PlotError {
    fn new(error: impl Display) -> Self {
        Self(error.to_string())
    }
}

/// An axis.
pub struct Axis {
    /// What it counts, with its unit; empty if its labels say so.
    pub title: &'static str,
    /// Its ends.
    pub range: std::ops::Range<f64>,
    /// How a value on it is written; empty for no label there.
    pub label: fn(f64) -> String,
}

/// One thing in the panel.
pub struct Layer {
    /// Its name in the legend, if it belongs there.
    pub name: Option<String>,
    /// Its colour.
    pub colour: RGBColor,
    /// What it is.
    pub shape: Shape,
}

/// What a layer draws.
pub enum Shape {
    /// A line through points.
    Line(Vec<Point>),
    /// A fainter line, for parts of a whole.
    Thin(Vec<Point>),
    /// A dashed line, for what the rest is compared with.
    Dashed(Vec<Point>),
    /// Filled rectangles between two corners.
    Boxes(Vec<[Point; 2]>),
    /// Translucent rectangles.
    Shades(Vec<[Point; 2]>),
    /// Dots.
    Dots(Vec<Point>),
    /// Rings, for what does not count.
    Rings(Vec<Point>),
    /// Words that begin at a point.
    Words(Vec<(Point, String)>),
}

/// A panel.
pub struct Plot {
    /// Height in pixels, with one row of names.
    pub height: u32,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// What is in it, from back to front.
    pub layers: Vec<Layer>,
}

impl Layer {
    /// A layer that the legend names.
    pub fn named(name: impl Into<String>, colour: RGBColor, shape: Shape) -> Self {
        Self { name: Some(name.into()), colour, shape }
    }

    /// A layer without an entry in the legend.
    pub fn unnamed(colour: RGBColor, shape: Shape) -> Self {
        Self { name: None, colour, shape }
    }
}

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

impl Plot {
    /// The picture, with `alt` as what a screen reader says.
    ///
    /// # Errors
    /// When an axis has no finite length, or the library can't draw it.
    pub fn svg(&self, alt: &str) -> Result<String, PlotError> {
        if !self.panel().has_size() {
            return Err(PlotError("the numbers span no range that an axis could have".into()));
        }
        let mut svg = String::new();
        // Each further row of names makes the picture taller, not the panel lower.
        let further = self.legend_rows().len().saturating_sub(1) as u32;
        let size = (WIDTH_PIXELS, self.height + LEGEND_PIXELS * further);
        let canvas = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        self.draw(&canvas)?;
        drop(canvas);
        Ok(accessible(&svg, alt))
    }

    fn panel(&self) -> Panel {
        Panel { x: self.x.range.clone(), y: self.y.range.clone() }
    }

    fn draw(&self, canvas: &Canvas<'_>) -> Result<(), PlotError> {
        let text = ("sans-serif", TEXT_SIZE).into_font().color(&palette::INK);
        let panel = match self.layers.iter().any(|layer| layer.name.is_some()) {
            true => self.legend(canvas, &text)?,
            false => canvas.clone(),
        };
        let mut chart = ChartBuilder::on(&panel)
            .margin(8)
            .margin_right(24)
            .x_label_area_size(38)
            .y_label_area_size(92)
            .build_cartesian_2d(self.x.range.clone(), self.y.range.clone())
            .map_err(PlotError::new)?;
        self.mesh(&mut chart, &text)?;
        for layer in &self.layers {
            layer.draw(&mut chart, &self.panel(), &text)?;
        }
        Ok(())
    }

    /// The layers that have a name.
    fn named(&self) -> impl Iterator<Item = (&Layer, &String)> {
        self.layers.iter().filter_map(|layer| Some((layer, layer.name.as_ref()?)))
    }

    /// Where the names begin, in pixels, row by row.
    fn legend_rows(&self) -> Vec<Vec<(i32, i32)>> {
        lines_of(self.named().map(|(_, name)| &name[..]))
    }

    /// Rows of names above the panel, where no line hides them. Returns what is left of the canvas.
    fn legend<'a>(
        &self,
        canvas: &Canvas<'a>,
        text: &TextStyle<'_>,
    ) -> Result<Canvas<'a>, PlotError> {
        let rows = self.legend_rows();
        let (row, panel) = canvas.split_vertically(LEGEND_PIXELS * rows.len() as u32);
        let places = rows.into_iter().flatten();
        for ((layer, name), (x, y)) in self.named().zip(places) {
            let swatch = Rectangle::new([(x, y + 8), (x + 12, y + 18)], layer.colour.filled());
            row.draw(&swatch).map_err(PlotError::new)?;
            row.draw(&Text::new(name.clone(), (x + 17, y + 7), text.clone()))
                .map_err(PlotError::new)?;
        }
        Ok(panel)
    }

    fn mesh(&self, chart: &mut Chart<'_>, text: &TextStyle<'_>) -> Result<(), PlotError> {
        let (x_label, y_label) = (self.x.label, self.y.label);
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(palette::GREY.mix(0.25))
            .axis_style(palette::GREY)
            .label_style(text.clone())
            .axis_desc_style(text.clone())
            .x_desc(self.x.title)
            .y_desc(self.y.title)
            .x_labels(7)
            .y_labels(6)
            .x_label_formatter(&|value| x_label(*value))
            .y_label_formatter(&|value| y_label(*value))
            .draw()
            .map_err(PlotError::new)
    }
}

impl Layer {
    /// Draws the part that is in the panel.
    fn draw(
        &self,
        chart: &mut Chart<'_>,
        panel: &Panel,
        text: &TextStyle<'_>,
    ) -> Result<(), PlotError> {
        let colour = self.colour;
        let (strong, thin) = (colour.stroke_width(2), colour.mix(0.7).stroke_width(1));
        let cut = |boxes: &[[Point; 2]]| -> Vec<_> {
            boxes.iter().filter_map(|b| panel.cut(*b)).collect()
        };
        let drawn = match &self.shape {
            Shape::Line(points) => chart.draw_series(paths(panel, points, strong)),
            Shape::Thin(points) => chart.draw_series(paths(panel, points, thin)),
            Shape::Dashed(points) => {
                for part in panel.line(points) {
                    let dashes = DashedLineSeries::new(part, 7, 5, strong);
                    chart.draw_series(dashes).map_err(PlotError::new)?;
                }
                return Ok(());
            }
            Shape::Boxes(boxes) => {
                let fill = colour.filled();
                chart.draw_series(cut(boxes).into_iter().map(|b| Rectangle::new(b, fill)))
            }
            Shape::Shades(boxes) => {
                let fill = colour.mix(0.18).filled();
                chart.draw_series(cut(boxes).into_iter().map(|b| Rectangle::new(b, fill)))
            }
            Shape::Dots(points) => {
                let inside = points.iter().filter(|point| panel.has(**point));
                chart.draw_series(inside.map(|p| Circle::new(*p, 3, colour.mix(0.8).filled())))
            }
            Shape::Rings(points) => {
                let inside = points.iter().filter(|point| panel.has(**point));
                chart.draw_series(inside.map(|p| Circle::new(*p, 3, colour.stroke_width(1))))
            }
            Shape::Words(words) => {
                let inside = words.iter().filter(|(at, _)| panel.has(*at));
                chart
                    .draw_series(inside.map(|(at, word)| Text::new(plain(word), *at, text.clone())))
            }
        };
        drawn.map(drop).map_err(PlotError::new)
    }
}

fn paths(panel: &Panel, points: &[Point], style: ShapeStyle) -> Vec<PathElement<Point>> {
    panel.line(points).into_iter().map(|part| PathElement::new(part, style)).collect()
}

/// Where the names of a legend begin, in pixels, row by row.
fn lines_of<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Vec<(i32, i32)>> {
    const LEFT_PIXELS: i32 = 100;
    let mut rows = vec![Vec::new()];
    let mut x = LEFT_PIXELS;
    for name in names {
        let width = 34 + CHARACTER_PIXELS * name.chars().count() as i32;
        if x > LEFT_PIXELS && x + width > WIDTH_PIXELS as i32 {
            rows.push(Vec::new());
            x = LEFT_PIXELS;
        }
        let y = (rows.len() as i32 - 1) * LEGEND_PIXELS as i32;
        rows.last_mut().expect("there is a row").push((x, y));
        x += width;
    }
    rows
}

/// The document with a name for screen readers, and with ink that suits the paper.
fn accessible(svg: &str, alt: &str) -> String {
    let name = maud::html! { (plain(alt)) }.into_string();
    let named = format!("<svg role=\"img\" aria-label=\"{name}\" ");
    let svg = svg.replacen("<svg ", &named, 1);
    match svg.find(">\n") {
        Some(end) => format!("{}{}{}", &svg[..=end], palette::STYLE, &svg[end + 1..]),
        None => svg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(layers: Vec<Layer>) -> Plot {
        let axis = || Axis { title: "x", range: 0.0..10.0, label: |value| format!("{value}") };
        Plot { height: 200, x: axis(), y: axis(), layers }
    }

    #[test]
    fn every_shape_is_drawn_and_named() {
        let corners = || vec![[(0.0, 0.0), (1.0, 1.0)]];
        let line = || vec![(0.0, 0.0), (5.0, 5.0)];
        let shapes = [
            ("line", Shape::Line(line())),
            ("thin", Shape::Thin(line())),
            ("dashed", Shape::Dashed(line())),
            ("boxes", Shape::Boxes(corners())),
            ("shades", Shape::Shades(corners())),
            ("dots", Shape::Dots(line())),
            ("rings", Shape::Rings(line())),
            ("words", Shape::Words(vec![((1.0, 1.0), "<b>".into())])),
        ];
        for (name, shape) in shapes {
            let empty = plot(vec![Layer::named(name, palette::BLUE, Shape::Line(Vec::new()))]);
            let empty = empty.svg("").unwrap();
            let full = plot(vec![Layer::named(name, palette::BLUE, shape)]);
            let svg = full.svg("a & \"b\"").unwrap();
            assert!(svg.len() > empty.len() + 40 && svg.contains(name), "{name}: {svg}");
            assert!(
                svg.starts_with("<svg role=\"img\" aria-label=\"a &amp; &quot;b&quot;\""),
                "{svg}"
            );
            assert!(!svg.contains("<b>"), "{svg}");
        }
    }

    #[test]
    fn a_long_legend_has_several_rows() {
        let rows = lines_of(["a name of a line"; 12].into_iter());
        assert!(rows.len() > 1 && rows.iter().map(Vec::len).sum::<usize>() == 12, "{rows:?}");
        assert!(rows.iter().flatten().all(|(x, _)| *x < WIDTH_PIXELS as i32 - 100), "{rows:?}");
    }

    #[test]
    fn numbers_beyond_all_measure_neither_panic_nor_hang() {
        let far = || vec![(-1e300, 1e300), (1e300, -1e300), (f64::NAN, f64::INFINITY)];
        let boxes = || vec![[(-1e300, -1e300), (1e300, 1e300)]];
        let shapes =
            [Shape::Line(far()), Shape::Dashed(far()), Shape::Dots(far()), Shape::Boxes(boxes())];
        let layers = shapes.map(|shape| Layer::unnamed(palette::BLUE, shape)).into();
        plot(layers).svg("").unwrap();
        let mut endless = plot(Vec::new());
        endless.y.range = 0.0..f64::INFINITY;
        assert!(endless.svg("").is_err());
    }
}
