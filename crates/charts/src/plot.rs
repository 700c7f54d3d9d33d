//! A panel with two axes, drawn as SVG.

use std::fmt::Display;

use plotters::coord::Shift;
use plotters::prelude::{
    Cartesian2d, ChartBuilder, ChartContext, Circle, Color, DrawingArea, IntoDrawingArea, IntoFont,
    PathElement, Rectangle, SVGBackend, ShapeStyle, Text, TextStyle,
};
use plotters::series::DashedLineSeries;
use plotters::style::{RGBColor, TRANSPARENT};

use crate::axis::{Axis, Scale};
use crate::clip::{Panel, Point};
use crate::clock::Tick;
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

/// Most labels of the vertical axis.
const MAX_LABELS: usize = 6;

/// Room beside an axis without labels.
const NO_LABELS_PIXELS: u32 = 8;

/// Margins of the panel, at least, on the left and on the right.
const MARGINS_PIXELS: [u32; 2] = [8, 24];

/// Height of a line of text.
const LINE_PIXELS: i32 = 15;

/// Mean width of a character of a sentence, pixels.
const MEAN_CHARACTER_PIXELS: u32 = 7;

/// How much taller rows are for each further line of the words in them.
const FURTHER_LINE: f64 = 0.8;

/// Most lines of a name; a peer may have chosen a longer one.
const MAX_LINES: usize = 4;

/// Size of text; the library makes 12.9 pixels of it (it divides by 1.24).
const TEXT_SIZE: u32 = 16;

/// Width of a character of this size, at least.
const CHARACTER_PIXELS: i32 = 8;

/// Height of the row of names.
const LEGEND_PIXELS: u32 = 24;

/// Room before a name, for its colour, and behind it.
const BESIDE_NAME_PIXELS: [i32; 2] = [17, 17];

/// A picture that could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("can't draw: {0}")]
pub struct PlotError(String);

impl PlotError {
    fn new(error: impl Display) -> Self {
        Self(error.to_string())
    }
}

/// One thing in the panel.
pub struct Layer {
    /// Its name in the legend, if it belongs there.
    pub name: Option<String>,
    /// Its colour.
    pub colour: RGBColor,
    /// What it is.
    pub shape: Shape,
    /// Whether its heights above zero are places in the panel and no values: they follow the top of the axis.
    pub is_placed: bool,
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
        Self { name: Some(name.into()), ..Self::unnamed(colour, shape) }
    }

    /// A layer without an entry in the legend.
    pub fn unnamed(colour: RGBColor, shape: Shape) -> Self {
        Self { name: None, colour, shape, is_placed: false }
    }

    /// The same at a place in the panel, whatever the axis is.
    pub fn placed(self) -> Self {
        Self { is_placed: true, ..self }
    }
}

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Scale, Scale>>;

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
        // Further rows of names make the picture taller, not the panel lower.
        let further = self.names(paper).height.saturating_sub(LEGEND_PIXELS);
        let size = (paper.width, self.height_on(paper) + further);
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
        let lines = words.flatten().map(|(_, word)| in_lines(word, self.letters(paper)).len());
        let further = lines.max().unwrap_or(1).saturating_sub(1);
        (f64::from(self.height) * (1.0 + FURTHER_LINE * further as f64)) as u32
    }

    /// Room for the labels of the vertical axis, pixels. On a sheet, the panels of all pictures begin at one place.
    fn labels(&self, paper: &Paper) -> u32 {
        let is_bare = self.y.title.is_empty() && (self.y.label)(self.y.range.end).is_empty();
        let labels = if is_bare && paper.width < WIDE.width { 0 } else { paper.labels };
        let first = half_a_label(&self.x, self.x.range.start).saturating_sub(MARGINS_PIXELS[0]);
        labels.max(first).max(NO_LABELS_PIXELS)
    }

    /// Room on the right, where half of the last label of the horizontal axis may stand.
    fn margin_right(&self) -> u32 {
        half_a_label(&self.x, self.x.range.end).max(MARGINS_PIXELS[1])
    }

    /// Letters that have room in a line of the panel.
    fn letters(&self, paper: &Paper) -> usize {
        let beside = self.labels(paper) + MARGINS_PIXELS[0] + self.margin_right();
        (paper.width.saturating_sub(beside) / MEAN_CHARACTER_PIXELS) as usize
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
        let letters = self.letters(paper);
        let [across, up] = [
            self.x.labelled(paper.ticks, letters),
            // Rows of text have room, however long they are.
            self.y.labelled(MAX_LABELS, usize::MAX),
        ];
        let mut chart = ChartBuilder::on(&panel)
            .margin(MARGINS_PIXELS[0])
            .margin_right(self.margin_right())
            .x_label_area_size(38)
            .y_label_area_size(self.labels(paper))
            .build_cartesian_2d(self.x.scale(&across), self.y.scale(&up))
            .map_err(PlotError::new)?;
        self.mesh(&mut chart, [&across, &up], &text)?;
        let words = Lettering { style: &text, letters };
        for layer in &self.layers {
            layer.draw(&mut chart, &self.panel(), &words)?;
        }
        Ok(())
    }

    /// The layers that have a name.
    fn named(&self) -> impl Iterator<Item = (&Layer, &String)> {
        self.layers.iter().filter_map(|layer| Some((layer, layer.name.as_ref()?)))
    }

    fn names(&self, paper: &Paper) -> Names {
        names_on(paper, self.named().map(|(_, name)| &name[..]))
    }

    /// Rows of names above the panel, where no line hides them. Returns what is left of the canvas.
    fn legend<'a>(
        &self,
        canvas: &Canvas<'a>,
        paper: &Paper,
        text: &TextStyle<'_>,
    ) -> Result<Canvas<'a>, PlotError> {
        let names = self.names(paper);
        let (area, panel) = canvas.split_vertically(names.height);
        for ((layer, _), Name { at: (x, y), lines }) in self.named().zip(names.placed) {
            let fill = layer.colour.mix(layer.shape.opacity()).filled();
            let swatch = Rectangle::new([(x, y + 8), (x + 12, y + 18)], fill);
            area.draw(&swatch).map_err(PlotError::new)?;
            for (line, number) in lines.into_iter().zip(0..) {
                let at = (x + BESIDE_NAME_PIXELS[0], y + 7 + number * LINE_PIXELS);
                area.draw(&Text::new(line, at, text.clone())).map_err(PlotError::new)?;
            }
        }
        Ok(panel)
    }

    fn mesh(
        &self,
        chart: &mut Chart<'_>,
        [across, up]: [&[Tick]; 2],
        text: &TextStyle<'_>,
    ) -> Result<(), PlotError> {
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(palette::GREY.mix(0.25))
            .axis_style(palette::GREY)
            .label_style(text.clone())
            .axis_desc_style(text.clone())
            .x_desc(&self.x.title)
            .y_desc(&self.y.title)
            .x_label_formatter(&|value| label_of(across, *value))
            .y_label_formatter(&|value| label_of(up, *value))
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

fn label_of(ticks: &[Tick], wanted: f64) -> String {
    let label = ticks.iter().find(|(value, _)| *value == wanted).map(|(_, label)| label.clone());
    label.unwrap_or_default()
}

/// Room that half of the label at an end takes beside the panel, pixels.
fn half_a_label(axis: &Axis, end: f64) -> u32 {
    let letters = axis.letters_of_end(end);
    u32::try_from(letters).unwrap_or(u32::MAX).saturating_mul(MEAN_CHARACTER_PIXELS) / 2
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

/// A text in lines of at most `letters`, between words if that is possible. What no line has room for is left out.
fn in_lines(text: &str, letters: usize) -> Vec<String> {
    let (mut lines, mut rest) = (Vec::new(), text);
    while let Some((end, next)) = rest.char_indices().nth(letters.max(1)) {
        if lines.len() == MAX_LINES - 1 {
            let whole = rest.chars().take(letters.saturating_sub(1)).collect::<String>();
            lines.push(whole + "…");
            return lines;
        }
        let (line, after) = match rest[..end + next.len_utf8()].rfind(' ') {
            Some(space) if space > 0 => (&rest[..space], &rest[space + 1..]),
            _ => rest.split_at(end),
        };
        lines.push(line.into());
        rest = after;
    }
    lines.push(rest.into());
    lines
}

fn paths(panel: &Panel, points: &[Point], style: ShapeStyle) -> Vec<PathElement<Point>> {
    panel.line(points).into_iter().map(|part| PathElement::new(part, style)).collect()
}

/// The names of a legend.
struct Names {
    placed: Vec<Name>,
    /// Of all their rows, pixels.
    height: u32,
}

/// A name of a legend: where it begins, in pixels, and its lines.
struct Name {
    at: (i32, i32),
    lines: Vec<String>,
}

/// The names side by side in rows, each as a whole: those of two arms may differ at their ends only.
fn names_on<'a>(paper: &Paper, names: impl Iterator<Item = &'a str>) -> Names {
    let left = paper.legend_left;
    let beside: i32 = BESIDE_NAME_PIXELS.into_iter().sum();
    let room = paper.width as i32 - left - BESIDE_NAME_PIXELS[0];
    let letters = usize::try_from(room / CHARACTER_PIXELS).unwrap_or(1);
    let height_of = |lines: usize| LEGEND_PIXELS as i32 + LINE_PIXELS * (lines as i32 - 1);
    let (mut placed, mut x, mut y, mut lines_in_row) = (Vec::new(), left, 0, 1);
    for name in names {
        let lines = in_lines(&plain(name), letters);
        let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let width = beside + CHARACTER_PIXELS * longest as i32;
        if x > left && x + width > paper.width as i32 {
            y += height_of(lines_in_row);
            (x, lines_in_row) = (left, 1);
        }
        lines_in_row = lines_in_row.max(lines.len());
        placed.push(Name { at: (x, y), lines });
        x += width;
    }
    Names { placed, height: (y + height_of(lines_in_row)) as u32 }
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
        let axis = || Axis::new(0.0..10.0, |value| format!("{value}")).titled("x");
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
            let names = names_on(&paper, ["a name of a line"; 12].into_iter());
            assert!(names.height > LEGEND_PIXELS && names.placed.len() == 12);
            let right = paper.width as i32 - 100;
            assert!(names.placed.iter().all(|name| name.at.0 < right));
        }
    }

    /// Two values of one setting: what tells them apart is at their ends.
    #[test]
    fn a_name_that_is_wider_than_a_phone_is_shown_to_its_end() {
        let name = |most: &str| format!("sysctl.net.ipv4.tcp_wmem=4096 16384 {most}");
        let long = [name("65536"), name("4194304"), "n".repeat(200), "short".into()];
        let names = names_on(&NARROW, long.iter().map(String::as_str));
        let lines = |at: usize| names.placed[at].lines.join(" ");
        assert_eq!([lines(0), lines(1)], [&long[0][..], &long[1][..]]);
        let room = (NARROW.width as usize - 25) / CHARACTER_PIXELS as usize;
        let all = || names.placed.iter().flat_map(|name| &name.lines);
        assert!(all().all(|line| line.chars().count() <= room), "{:?}", all().collect::<Vec<_>>());
        assert!(names.placed[2].lines.len() == MAX_LINES && lines(2).ends_with('…'));
        let tops: Vec<i32> = names.placed.iter().map(|name| name.at.1).collect();
        assert_eq!(tops, [0, 39, 78, 78 + 24 + 3 * 15], "none stands upon another");
        assert_eq!(names.height, 78 + 24 + 3 * 15 + 24);
    }

    /// A label is centred at its place on the axis, which may be the end of the panel.
    #[test]
    fn the_ends_of_the_horizontal_axis_have_room_for_their_labels() {
        let bare = Axis::bare(0.0..1.0);
        let times = |_: f64| String::from("13.0 times");
        let x = Axis::new(0.0..13.0, times);
        let plot = Plot { x, y: bare, ..plot(Vec::new()) };
        assert_eq!([plot.margin_right(), plot.labels(&NARROW) + MARGINS_PIXELS[0]], [35, 35]);
        assert_eq!(plot.labels(&WIDE), WIDE.labels);
    }

    #[test]
    fn words_that_have_no_room_on_a_phone_have_two_lines_there() {
        let long = "path: 162.3k in, 1641 lost (1.01 %), segments".to_owned();
        let axis = Axis::bare(0.0..10.0);
        let words = Layer::unnamed(palette::INK, Shape::Words(vec![((1.0, 1.0), long)]));
        let plot = Plot { y: axis, ..plot(vec![words]) };
        let picture = plot.svg("").unwrap();
        let height = |svg: &str| {
            svg.split_once("height=\"").unwrap().1.split_once('"').unwrap().0.parse::<u32>()
        };
        assert_eq!(height(&picture.wide), Ok(200));
        assert_eq!(height(&picture.narrow), Ok(360));
        assert_eq!(in_lines("one two three", 8), ["one two", "three"]);
        assert_eq!(in_lines("one two", 7), ["one two"]);
        assert_eq!(in_lines("äöüäöüäöü", 3), ["äöü"; 3]);
        assert_eq!(in_lines("one two three four", 5), ["one", "two", "three", "four"]);
        assert_eq!(in_lines("1 2 3 4 5", 1), ["1", "2", "3", "…"]);
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
