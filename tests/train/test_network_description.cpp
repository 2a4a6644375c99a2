// A network's description in a file's entries, and back.
#include "tandem/train/network_description.h"

#include "tests/support/catch.h"

using namespace tandem;

TEST_CASE("a network's description keeps what a network is made by") {
  train::NetworkDescription network;
  network.model = {.name = "airbench94", .width = 0.5, .activation = "silu", .unit_head = true};
  network.class_names = std::vector<std::string>(10, "a name");
  network.mean = network.deviation = {0.5F, 0.25F, 0.125F};
  layers::Metadata entries = train::to_metadata(network);
  const layers::ModelOptions read = train::read_network(entries).model;
  CHECK(read.name == "airbench94");
  CHECK(read.width == 0.5);
  CHECK(read.activation == "silu");
  CHECK(read.unit_head);
  CHECK(train::other_function(network.model, entries).empty());
  CHECK(train::other_function({.name = "airbench94", .width = 0.5}, entries) ==
        "activation silu (here gelu), unit_head true (here false)");
  network.model = {.name = "bag_of_tricks", .celu_alpha = 0.75};
  CHECK(train::other_function({.name = "bag_of_tricks"}, train::to_metadata(network)) == "celu_alpha 0.75 (here 0.3)");
  CHECK(train::read_network(train::to_metadata(network)).model.celu_alpha == 0.75);
  // As programs before these options wrote it.
  for (const char* const name : {"width", "activation", "unit_head", "celu_alpha"}) entries.erase(name);
  CHECK(train::other_function({.name = "airbench94"}, entries).empty());
  const layers::ModelOptions older = train::read_network(entries).model;
  CHECK(older.width == 1.0);
  CHECK(older.activation == "gelu");
  CHECK_FALSE(older.unit_head);
  CHECK(older.celu_alpha == 0.3);
}
