// The file of an evaluation in detail: evaluation.json.
#pragma once

#include "tandem/data/image_dataset.h"
#include "tandem/train/evaluation_report.h"

#include <string>

namespace tandem::train {

/// A JSON object: "split", "epoch", "images", "loss", "accuracy" (percent), "classes" (names), "confusion" (rows by
/// label), "per_class" ("class", "images", "accuracy"), "calibration" ("ece" and "bins" of "from", "to", "images",
/// "confidence" and "accuracy", all fractions) and "worst" ("index", "label", "predicted", "confidence", "loss" and
/// "png": the image as the data set has it, a PNG file in base64; left out where this build has no libpng, and of
/// images that are neither grey nor of three colours). Numbers that JSON cannot hold are null. `images` is the data set
/// that was evaluated. Throws Error where its classes are not those of the report. Example:
///     #include "tandem/data/synthetic.h"
///     const data::ImageDataset images = data::make_synthetic({.count = 10});
///     EvaluationReport report;
///     report.classes = images.classes();
///     report.confusion.assign(100, 0);
///     report.class_images.assign(10, 1);
///     const std::string text = evaluation_json(report, images);
std::string evaluation_json(const EvaluationReport& report, const data::ImageDataset& images);

/// Writes it: the whole file, or what was there stays. Throws Error that begins with the path.
void write_evaluation(const std::string& path, const EvaluationReport& report, const data::ImageDataset& images);

}  // namespace tandem::train
