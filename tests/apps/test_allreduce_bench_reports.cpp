// What allreduce_bench writes.
#include "apps/allreduce_bench/connectivity.h"
#include "apps/allreduce_bench/reports.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <sstream>

using namespace tandem;
using namespace tandem::allreduce_bench;
using tandem::test::ContainsText;

namespace {

const BenchCollective& collective(const std::string& name) { return *find_collectives({name}, 2).front(); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  for (const std::string& line : lines_of(text)) most = std::max(most, line.size());
  return most;
}

/// 1 ms and 2 ms out of place and in place, of 1 MB.
BenchRow row_of(const std::string& name, const std::string& backend) {
  BenchRow row{.collective = &collective(name), .bytes = 1000000, .backend = backend};
  if (row.collective->out_of_place) row.out_of_place = BenchTime{1e-3, 0.5e-3};
  if (row.collective->in_place) row.in_place = BenchTime{2e-3, 1.5e-3};
  if (!row.collective->has_bytes()) row.bytes = 0;
  return row;
}

}  // namespace

TEST_CASE("allreduce_bench: the table has units, and is 80 columns wide, with all that can be in it 100") {
  BenchOptions options{.collectives = {}, .backends = {"mpi"}};
  const Table table(options, 4);
  const std::string heading = table.heading(collective("all_reduce"));
  CHECK(heading.find("GB/s") != std::string::npos);
  CHECK(heading.find("shared: tensors in memory that all ranks see") != std::string::npos);
  for (const BenchCollective& each : bench_collectives()) CHECK(widest(table.heading(each)) <= 80);
  CHECK(table.line(row_of("all_reduce", "mpi")) ==
        "  1000000  mpi              1000.0   1.00   1.50   2000.0   0.50   0.75     0\n");
  CHECK(table.line(row_of("broadcast", "mpi")) ==
        "  1000000  mpi                   -      -      -   2000.0   0.50   0.50     0\n");
  CHECK(table.line(row_of("barrier", "mpi")) ==
        "        0  mpi              1000.0      -      -        -      -      -     0\n");

  options.algorithms = {"recursive-doubling"};
  options.predicts = options.roofline = true;
  const Table full(options, 4);
  CHECK(widest(full.heading(collective("all_reduce"))) <= 100);
  BenchRow row = row_of("all_reduce", "native, recursive-doubling");
  row.in_place->of_roofline = 0.5;
  row.predicted = 123.4;
  CHECK(full.line(row) ==
        "  1000000  recursive-doubling   1000.0   1.00   1.50   2000.0   0.50   0.75       50 123400000     0\n");
}

TEST_CASE("allreduce_bench: an object of JSON has what there is, and null for a form that there is not") {
  const BenchOptions options{.collectives = {}, .backends = {}};
  CHECK(json_line(row_of("broadcast", "mpi"), options, 2) ==
        R"({"collective":"broadcast","dtype":"f32","bytes":1000000,"ranks":2,"backend":"mpi","shared":false,)"
        R"("out_of_place":null,"in_place":{"seconds":0.002,"least_seconds":0.0015,"algbw":500000000.0,)"
        R"("busbw":500000000.0},"wrong":0})");
  CHECK(json_line(row_of("barrier", "mpi"), options, 2) ==
        R"({"collective":"barrier","bytes":0,"ranks":2,"backend":"mpi","shared":false,)"
        R"("out_of_place":{"seconds":0.001,"least_seconds":0.0005},"in_place":null,"wrong":0})");
}

TEST_CASE("allreduce_bench: CSV has a heading, and names with commas in quotes") {
  const BenchOptions options{.collectives = {}, .backends = {}};
  BenchRow row = row_of("all_reduce", "native, ring");
  row.out_of_place->of_roofline = row.in_place->of_roofline = 0.25;
  row.predicted = 0.125;
  const std::vector<BenchRow> rows{row, row_of("barrier", "mpi")};
  const std::vector<std::string> lines = lines_of(csv_report(rows, options, 2));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].starts_with("collective,dtype,op,bytes,ranks,backend,shared,out_of_place_seconds,"));
  CHECK(lines[1] ==
        "all_reduce,f32,sum,1000000,2,\"native, ring\",0,0.001,0.0005,1e+09,1e+09,0.25,0.002,0.0015,5e+08,5e+08,0.25,"
        "0,0.125,,");
  CHECK(lines[2] == "barrier,,,0,2,mpi,0,0.001,0.0005,,,,,,,,,0,,,");
  CHECK(std::ranges::count(lines[0], ',') == std::ranges::count(lines[2], ','));
}

TEST_CASE("allreduce_bench: the picture names each contender, and the roofline is dashed") {
  const BenchOptions options{.collectives = {}, .backends = {}};
  std::vector<BenchRow> rows;
  for (const std::string backend : {"mpi", "native", "roofline"})
    for (const std::int64_t bytes : {1000, 1000000}) {
      rows.push_back(row_of("all_reduce", backend));
      rows.back().bytes = bytes;
    }
  const std::string without = svg_report(std::span(rows).first(4), options, 2), with = svg_report(rows, options, 2);
  CHECK(without.find("stroke-dasharray") == std::string::npos);
  CHECK(with.find("stroke-dasharray") != std::string::npos);
  for (const char* const text : {">mpi<", ">native<", ">roofline<", "all_reduce sum f32, 2 ranks, in place", ">1 ms<"})
    CHECK(with.find(text) != std::string::npos);
  // One rank has no bus, and a barrier no size.
  CHECK(svg_report(rows, options, 1).find("bandwidth of the bus") == std::string::npos);
  const std::vector<BenchRow> barrier{row_of("barrier", "mpi")};
  CHECK(svg_report(barrier, options, 2).find("barrier, 2 ranks: time of the slowest rank") != std::string::npos);
}

TEST_CASE("allreduce_bench: pairs of ranks that reach each other or not, as JSON and CSV") {
  using comm::Reach;
  comm::Connectivity all;
  all.hosts = {"alpha", "beta", ""};
  all.places = {0, 0, -1};
  all.reaches = {{Reach::yes, Reach::yes, Reach::no},
                 {Reach::yes, Reach::yes, Reach::unknown},
                 {Reach::no, Reach::unknown, Reach::yes}};
  CHECK(csv_report(all) ==
        "from,to,from_host,to_host,reached,latency_seconds,bandwidth\n"
        "0,1,alpha,beta,1,,\n0,2,alpha,,0,,\n1,2,beta,,,,\n");
  CHECK_THAT(
      json_lines(all),
      ContainsText(
          R"({"from":1,"to":2,"from_host":"beta","to_host":"","reached":null,"latency_seconds":null,"bandwidth":null})"));
  all.measured = {0, 1};
  all.speeds = {{{}, {2e-5, 1e9}}, {{2e-5, 1e9}, {}}};
  CHECK_THAT(csv_report(all), ContainsText("\n0,1,alpha,beta,1,2e-05,1e+09\n"));
  CHECK(
      json_lines(all) ==
      R"({"from":0,"to":1,"from_host":"alpha","to_host":"beta","reached":true,"latency_seconds":2e-05,"bandwidth":1000000000.0})"
      "\n");
}
