// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/benchmarks.svg: a bar for each figure that is compared with Linux's or
//! ptrace's, from 1 (as much as there) to the ratio, on a logarithmic scale.

use anyhow::{anyhow, Context as _, Result};
use dune_machine::MachineType;
use plotters::coord::types::RangedCoordf64;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::targets::{Baseline, Subject, SUBJECTS};
use super::{numbers, Figure};

/// Sizes in pixels.
const WIDTH: u32 = 960;
const HEAD: u32 = 122;
const FOOT: u32 = 56;
const ROW: u32 = 46;
const TITLES: u32 = 250;
const MARGIN: u32 = 24;

/// The smallest and the largest ratio that have room.
const SCALE: (f64, f64) = (0.002, 20.0);

/// One for each machine type, from a palette for colour-blind readers too.
const COLOURS: [RGBColor; 2] = [RGBColor(213, 94, 0), RGBColor(0, 114, 178)];
const GREY: RGBColor = RGBColor(90, 90, 90);

const NOTES: [&str; 3] = [
    "Left of 1, Dune executes fewer instructions than Linux. Interception is compared with ptrace,",
    "DUNE_RUN with an ioctl that does nothing. Entering has no counterpart (docs/benchmarks.md).",
    "An exit counts as one instruction. Exceptions, and protect, fault, unprotect, have no exit.",
];

/// The space above the first bar and below the last one, as a part of a row's height. The
/// bars share the rest.
const GAP: f64 = 0.14;

/// The plot of these figures. All bars are of one kernel: the first that was measured.
pub fn draw(figures: &[Figure]) -> Result<String> {
    let kernel = &figures.first().context("no figure was measured, so there is no plot")?.kernel;
    let of_kernel: Vec<&Figure> =
        figures.iter().filter(|figure| figure.kernel == *kernel).collect();
    let title = format!("Instructions in emulators: Dune mode divided by Linux {kernel}");
    let mut text = String::new();
    // The backend's error type borrows from `text`, so the drawing is a function of its own.
    draw_into(&mut text, &of_kernel, &title).map_err(|e| anyhow!("drawing the plot: {e}"))?;
    // The title and the description are for screen readers.
    let (tag, rest) = text.split_once('>').ok_or_else(|| anyhow!("the plot is no SVG"))?;
    let description = NOTES.join(" ");
    let rest = with_round_font_sizes(rest);
    Ok(format!("{tag} role=\"img\">\n<title>{title}</title>\n<desc>{description}</desc>{rest}\n"))
}

/// plotters writes font sizes with up to 15 decimals: 16.935483870967744.
fn with_round_font_sizes(svg: &str) -> String {
    const SIZE: &str = "font-size=\"";
    let mut parts = svg.split(SIZE);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += SIZE;
        match part.split_once('"').map(|(size, rest)| (size.parse::<f64>(), rest)) {
            Some((Ok(size), rest)) => text += &format!("{size:.1}\"{rest}"),
            _ => text += part,
        }
    }
    text
}

type Drawn<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn draw_into(text: &mut String, figures: &[&Figure], title: &str) -> Drawn {
    let subjects: Vec<&Subject> = SUBJECTS
        .iter()
        .filter(|subject| {
            matches!(
                subject.baseline,
                Some(Baseline::Linux | Baseline::Ptrace | Baseline::EmptyIoctl)
            )
        })
        .collect();
    let height = HEAD + ROW * subjects.len() as u32 + FOOT;
    let root = SVGBackend::with_string(text, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE)?;
    head(&root, title)?;

    let rows = subjects.len() as f64;
    let mut chart = ChartBuilder::on(&root)
        .margin_top(HEAD)
        .margin_right(MARGIN)
        .x_label_area_size(FOOT)
        .y_label_area_size(TITLES)
        .build_cartesian_2d((SCALE.0..SCALE.1).log_scale(), 0.0..rows)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .axis_style(GREY.mix(0.3))
        .x_label_formatter(&|ratio| match *ratio {
            r if r < 0.99 => format!("1 / {:.0}", 1.0 / r),
            r => format!("{r:.0} ×"),
        })
        .label_style(("sans-serif", 14).into_font().color(&GREY))
        .x_desc("instructions, Dune / Linux")
        .draw()?;

    for (row, subject) in subjects.iter().enumerate() {
        bars(&mut chart, rows - row as f64, subject, figures)?;
    }
    let line = PathElement::new([(1.0, 0.0), (1.0, rows)], BLACK.stroke_width(2));
    chart.draw_series([line])?;
    root.present()?;
    Ok(())
}

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<LogCoord<f64>, RangedCoordf64>>;

/// The row of a subject, which ends at `top`: its title, and a bar for each machine type that
/// has its figure.
fn bars(chart: &mut Chart, top: f64, subject: &Subject, figures: &[&Figure]) -> Drawn {
    let label = |horizontal, colour: &RGBColor| {
        let style = ("sans-serif", 15).into_font().color(colour);
        style.pos(Pos::new(horizontal, VPos::Center))
    };
    let title = Text::new(subject.title, (-12, 0), label(HPos::Right, &BLACK));
    chart.draw_series([EmptyElement::at((SCALE.0, top - 0.5)) + title])?;
    let thickness = (1.0 - 2.0 * GAP) / MachineType::ALL.len() as f64;
    for (place, (machine_type, colour)) in MachineType::ALL.iter().zip(&COLOURS).enumerate() {
        let of_bar =
            |figure: &&&Figure| figure.id == subject.id && figure.machine == machine_type.name;
        let Some(ratio) = figures.iter().find(of_bar).and_then(|figure| figure.ratio) else {
            continue;
        };
        let high = top - GAP - thickness * place as f64;
        let low = high - thickness * 0.9;
        let end = ratio.clamp(SCALE.0, SCALE.1);
        chart.draw_series([Rectangle::new([(1.0, high), (end, low)], colour.filled())])?;
        let (side, offset) = if ratio < 1.0 { (HPos::Right, -6) } else { (HPos::Left, 6) };
        let value = Text::new(numbers::ratio(ratio), (offset, 0), label(side, &GREY));
        chart.draw_series([EmptyElement::at((end, (high + low) / 2.0)) + value])?;
    }
    Ok(())
}

/// The title, what the sides mean, and the colours.
fn head(root: &DrawingArea<SVGBackend, Shift>, title: &str) -> Drawn {
    let text = |size, colour: &RGBColor| ("sans-serif", size).into_font().color(colour);
    root.draw(&Text::new(title, (MARGIN as i32, 18), text(21, &BLACK)))?;
    for (line, note) in NOTES.iter().enumerate() {
        let y = 48 + 22 * line as i32;
        root.draw(&Text::new(*note, (MARGIN as i32, y), text(15, &GREY)))?;
    }
    for (place, (machine_type, colour)) in MachineType::ALL.iter().zip(&COLOURS).enumerate() {
        let x = (WIDTH - 190) as i32 + 90 * place as i32;
        root.draw(&Rectangle::new([(x, 20), (x + 14, 34)], colour.filled()))?;
        root.draw(&Text::new(machine_type.vendor, (x + 20, 20), text(15, &BLACK)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plot_has_each_ratio_and_is_the_same_each_time() {
        let figures =
            [Figure::example("getpid_ring0", 360.0, 372.0), Figure::example("trap", 3968.0, 64.0)];
        let plot = draw(&figures).expect("it can be drawn");
        assert!(plot.starts_with("<svg "));
        assert!(plot.contains(" role=\"img\">\n<title>Instructions "), "{plot}");
        assert!(plot.contains("</title>\n<desc>Left of 1, Dune "), "{plot}");
        assert!(plot.contains(" font-size=\"16.9\""), "{plot}");
        for text in ["1.03", "1 / 62", "exception and handler", "AMD", "Linux 6.1"] {
            assert!(plot.contains(text), "{text}");
        }
        assert_eq!(plot, draw(&figures).expect("it can be drawn"));
        assert!(draw(&[]).is_err());
    }
}
