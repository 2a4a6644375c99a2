// Browsers start no workers from file://, where the search would need one. There, what a worker would run goes into a hidden
// frame of the page, which has the page's own origin.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      const tell = (target, data) => setTimeout(() => {
        const event = new MessageEvent("message", { data });
        target.dispatchEvent(event);
      });
      const add = (address) => new Promise((done, failed) => {
        const script = inside.document.createElement("script");
        script.src = new URL(address, document.baseURI);
        script.onload = done;
        script.onerror = failed;
        inside.document.body.append(script);
      });
      inside.postMessage = (data) => {
        tell(this, data);
        if (this.onmessage) setTimeout(() => this.onmessage({ data }));
      };
      inside.importScripts = (...addresses) => Promise.all(addresses.map(add));
      this.ready = add(url);
      this.ready.catch((error) => this.dispatchEvent(new ErrorEvent("error", { error })));
      this.tell = (data) => tell(inside, data);
    }
    postMessage(data) {
      this.ready.then(() => this.tell(data));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
