// Links as cost curves.
#include "tandem/comm/cost/network_costs.h"

namespace tandem::comm {

namespace {

MessageCosts with_links(MessageCosts costs, const NetworkModel& model) {
  const auto curve = [](const LinkModel& link) { return CostCurve::line(link.latency, link.bytes_per_second); };
  costs.within_host = curve(model.within_host);
  costs.between_hosts = curve(model.between_hosts);
  return costs;
}

}  // namespace

MessageCosts costs_of(const NetworkModel& model) { return with_links({}, model); }

MessageCosts real_time_costs_of(const NetworkModel& model) { return with_links(usual_message_costs(), model); }

}  // namespace tandem::comm
