// Links as cost curves.
#include "tandem/comm/cost/network_costs.h"

namespace tandem::comm {

MessageCosts costs_of(const NetworkModel& model) {
  const auto curve = [](const LinkModel& link) { return CostCurve::line(link.latency, link.bytes_per_second); };
  MessageCosts costs;
  costs.within_host = curve(model.within_host);
  costs.between_hosts = curve(model.between_hosts);
  return costs;
}

}  // namespace tandem::comm
