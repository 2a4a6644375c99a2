// A network and its ranks are to fit.
#include "tandem/comm/transports/simulated/real_time_network.h"

#include "tandem/core/error.h"

namespace tandem::comm {

NetworkModel real_time_network(std::string_view text, int ranks) {
  NetworkModel model = parse_network_model(text);
  require(!model.is_link_shared, "network: link=shared is for a virtual clock; leave it out in real time");
  if (model.hosts == 0) model.hosts = ranks;
  require(model.ranks() == ranks, "network: hosts={}x{} are {} ranks, and here are {}; start {}, or leave hosts out",
          model.hosts, model.ranks_per_host, model.ranks(), ranks, model.ranks());
  for (const LostLink& link : model.lost)
    require(link.from < ranks && link.to < ranks, "network: lose={}-{} names a rank beyond the {} that there are",
            link.from, link.to, ranks);
  return model;
}

}  // namespace tandem::comm
