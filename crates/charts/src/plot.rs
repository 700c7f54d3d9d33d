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
use crate::figure::Picture;
use crate::palette;
use crate::words::plain;

/// What a picture is drawn on. Pixels are the picture's own; a page scales it.
#[derive(Debug, Clone, Copy)]
struct Paper {
    width: u32,
    /// Room for the labels of the vertical axis.
    labels: u32,
    /// Where the names of the legend begin.
    legend_left: i32,
    /// Most labels of the horizontal axis.
    ticks: usize,
}

/// A screen or a sheet.
const WIDE: Paper = Paper { width: 760, labels: 92, legend_left: 100, ticks: 7 };

/// A phone of 360 pixels without the margins of the page. Text there has at least 12 pixels.
const NARROW: Paper = Paper { width: 330, labels: 80, legend_left: 8, ticks: 3 };

/// Room beside an axis without labels.
const NO_LABELS_PIXELS: u32 = 8;

/// Margins of the panel, on the left and on the right.
const MARGINS_PIXELS: [u32; 2] = [8, 24];

/// Height of a line of text.
const LINE_PIXELS: i32 = 15;

/// Mean width of a character of a sentence, pixels.
const MEAN_CHARACTER_PIXELS: u32 = 7;

/// How much taller rows are if words in them need two lines.
const TWO_LINES: f64 = 1.8;

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

impl Shape {
    /// How much of its colour is seen, 0 to 1; the legend shows the same.
    fn opacity(&self) -> f64 {
        match self {
            Self::Shades(_) => 0.18,
            Self::Thin(_) => 0.7,
            _ => 1.0,
        }
    }
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
    pub fn svg(&self, alt: &str) -> Result<Picture, PlotError> {
        if !self.panel().has_size() {
            return Err(PlotError("the numbers span no range that an axis could have".into()));
        }
        Ok(Picture { wide: self.on(&WIDE, alt)?, narrow: self.on(&NARROW, alt)? })
    }

    fn on(&self, paper: &Paper, alt: &str) -> Result<String, PlotError> {
        let mut svg = String::new();
        // Each further row of names makes the picture taller, not the panel lower.
        let further = self.legend_rows(paper).len().saturating_sub(1) as u32;
        let size = (paper.width, self.height_on(paper) + LEGEND_PIXELS * further);
        let canvas = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        self.draw(&canvas, paper)?;
        drop(canvas);
        Ok(accessible(&svg, alt))
    }

    fn height_on(&self, paper: &Paper) -> u32 {
        let words = self.layers.iter().filter_map(|layer| match &layer.shape {
            Shape::Words(words) => Some(words),
            _ => None,
        });
        let mut words = words.flatten().map(|(_, word)| word);
        match words.any(|word| in_lines(word, self.letters(paper)).len() > 1) {
            true => (f64::from(self.height) * TWO_LINES) as u32,
            false => self.height,
        }
    }

    /// Room for the labels of the vertical axis, pixels. On a sheet, the panels of all pictures begin at one place.
    fn labels(&self, paper: &Paper) -> u32 {
        let is_bare = self.y.title.is_empty() && (self.y.label)(self.y.range.end).is_empty();
        if is_bare && paper.width < WIDE.width { NO_LABELS_PIXELS } else { paper.labels }
    }

    /// Letters that have room in a line of the panel.
    fn letters(&self, paper: &Paper) -> usize {
        let beside: u32 = MARGINS_PIXELS.into_iter().sum();
        (paper.width.saturating_sub(self.labels(paper) + beside) / MEAN_CHARACTER_PIXELS) as usize
    }

    fn panel(&self) -> Panel {
        Panel { x: self.x.range.clone(), y: self.y.range.clone() }
    }

    fn draw(&self, canvas: &Canvas<'_>, paper: &Paper) -> Result<(), PlotError> {
        let text = ("sans-serif", TEXT_SIZE).into_font().color(&palette::INK);
        let panel = match self.layers.iter().any(|layer| layer.name.is_some()) {
            true => self.legend(canvas, paper, &text)?,
            false => canvas.clone(),
        };
        let mut chart = ChartBuilder::on(&panel)
            .margin(MARGINS_PIXELS[0])
            .margin_right(MARGINS_PIXELS[1])
            .x_label_area_size(38)
            .y_label_area_size(self.labels(paper))
            .build_cartesian_2d(self.x.range.clone(), self.y.range.clone())
            .map_err(PlotError::new)?;
        self.mesh(&mut chart, paper, &text)?;
        let words = Lettering { style: &text, letters: self.letters(paper) };
        for layer in &self.layers {
            layer.draw(&mut chart, &self.panel(), &words)?;
        }
        Ok(())
    }

    /// The layers that have a name.
    fn named(&self) -> impl Iterator<Item = (&Layer, &String)> {
        self.layers.iter().filter_map(|layer| Some((layer, layer.name.as_ref()?)))
    }

    /// Where the names begin, in pixels, row by row.
    fn legend_rows(&self, paper: &Paper) -> Vec<Vec<(i32, i32)>> {
        lines_of(paper, self.named().map(|(_, name)| &name[..]))
    }

    /// Rows of names above the panel, where no line hides them. Returns what is left of the canvas.
    fn legend<'a>(
        &self,
        canvas: &Canvas<'a>,
        paper: &Paper,
        text: &TextStyle<'_>,
    ) -> Result<Canvas<'a>, PlotError> {
        let rows = self.legend_rows(paper);
        let (row, panel) = canvas.split_vertically(LEGEND_PIXELS * rows.len() as u32);
        let places = rows.into_iter().flatten();
        for ((layer, name), (x, y)) in self.named().zip(places) {
            let fill = layer.colour.mix(layer.shape.opacity()).filled();
            let swatch = Rectangle::new([(x, y + 8), (x + 12, y + 18)], fill);
            row.draw(&swatch).map_err(PlotError::new)?;
            row.draw(&Text::new(name.clone(), (x + 17, y + 7), text.clone()))
                .map_err(PlotError::new)?;
        }
        Ok(panel)
    }

    fn mesh(
        &self,
        chart: &mut Chart<'_>,
        paper: &Paper,
        text: &TextStyle<'_>,
    ) -> Result<(), PlotError> {
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
            .x_labels(paper.ticks)
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
        text: &Lettering<'_>,
    ) -> Result<(), PlotError> {
        let colour = self.colour;
        let (strong, thin) =
            (colour.stroke_width(2), colour.mix(self.shape.opacity()).stroke_width(1));
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
                let fill = colour.mix(self.shape.opacity()).filled();
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
                let mut inside = words.iter().filter(|(at, _)| panel.has(*at));
                return inside.try_for_each(|(at, word)| text.draw(chart, *at, word));
            }
        };
        drawn.map(drop).map_err(PlotError::new)
    }
}

/// How words in the panel are written.
struct Lettering<'a> {
    style: &'a TextStyle<'a>,
    letters: usize,
}

impl Lettering<'_> {
    /// Draws words at a point, in lines that have room.
    fn draw(&self, chart: &Chart<'_>, at: Point, words: &str) -> Result<(), PlotError> {
        let area = chart.plotting_area();
        let ((left, top), (x, y)) = (area.get_base_pixel(), chart.backend_coord(&at));
        let pixels = area.strip_coord_spec();
        for (line, number) in in_lines(&plain(words), self.letters).into_iter().zip(0..) {
            let place = (x - left, y - top + number * LINE_PIXELS);
            let line = Text::new(line, place, self.style.clone());
            pixels.draw(&line).map_err(PlotError::new)?;
        }
        Ok(())
    }
}

/// A text in one line, or in two if it is longer than `letters`.
fn in_lines(text: &str, letters: usize) -> Vec<String> {
    let Some((end, next)) = text.char_indices().nth(letters) else { return vec![text.into()] };
    match text[..end + next.len_utf8()].rfind(' ') {
        Some(space) if space > 0 => vec![text[..space].into(), text[space + 1..].into()],
        _ => vec![text.into()],
    }
}

fn paths(panel: &Panel, points: &[Point], style: ShapeStyle) -> Vec<PathElement<Point>> {
    panel.line(points).into_iter().map(|part| PathElement::new(part, style)).collect()
}

/// Where the names of a legend begin, in pixels, row by row.
fn lines_of<'a>(paper: &Paper, names: impl Iterator<Item = &'a str>) -> Vec<Vec<(i32, i32)>> {
    let left = paper.legend_left;
    let mut rows = vec![Vec::new()];
    let mut x = left;
    for name in names {
        let width = 34 + CHARACTER_PIXELS * name.chars().count() as i32;
        if x > left && x + width > paper.width as i32 {
            rows.push(Vec::new());
            x = left;
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
        for paper in [WIDE, NARROW] {
            let rows = lines_of(&paper, ["a name of a line"; 12].into_iter());
            assert!(rows.len() > 1 && rows.iter().map(Vec::len).sum::<usize>() == 12, "{rows:?}");
            let right = paper.width as i32 - 100;
            assert!(rows.iter().flatten().all(|(x, _)| *x < right), "{rows:?}");
        }
    }

    #[test]
    fn words_that_have_no_room_on_a_phone_have_two_lines_there() {
        let long = "path: 162.3k in, 1641 lost (1.01 %), segments".to_owned();
        let axis = Axis { title: "", range: 0.0..10.0, label: |_| String::new() };
        let words = Layer::unnamed(palette::INK, Shape::Words(vec![((1.0, 1.0), long.repeat(2))]));
        let plot = Plot { y: axis, ..plot(vec![words]) };
        let picture = plot.svg("").unwrap();
        let height = |svg: &str| {
            svg.split_once("height=\"").unwrap().1.split_once('"').unwrap().0.parse::<u32>()
        };
        assert_eq!(height(&picture.wide), Ok(200));
        assert_eq!(height(&picture.narrow), Ok(360));
        assert_eq!(in_lines("one two three", 8), ["one two", "three"]);
        assert_eq!(in_lines("one two", 7), ["one two"]);
        assert_eq!(in_lines("äöüäöüäöü", 3), ["äöüäöüäöü"]);
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
