// The wallets of this browser: those that announce themselves (EIP-6963), or the one at window.ethereum (EIP-1193) where none does.

// offerWallets fills place with a button for each wallet, as they are found, and hides it while there is none. use is called with the
// wallet of a button that was pressed; all of them wait until it is done.
export function offerWallets(place, verb, look, use) {
  let busy = false;
  const enable = () => { for (const button of place.children) button.disabled = busy; };
  const press = async (wallet) => {
    busy = true;
    enable();
    try {
      await use(wallet);
    } finally {
      busy = false;
      enable();
    }
  };
  findWallets((wallets) => {
    place.replaceChildren(...wallets.map((wallet) => {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: look, textContent: `${verb} ${wallet.name || "a wallet"}` });
      button.addEventListener("click", () => press(wallet));
      return button;
    }));
    enable();
    place.hidden = wallets.length === 0;
    document.querySelector("[data-without-wallet]")?.toggleAttribute("hidden", wallets.length > 0);
  });
}

// findWallets calls show with all wallets, each {name, provider}, whenever there is another one.
function findWallets(show) {
  const announced = new Map();
  const update = () => {
    const unannounced = window.ethereum ? [{ name: "", provider: window.ethereum }] : [];
    show(announced.size > 0 ? [...announced.values()] : unannounced);
  };
  addEventListener("eip6963:announceProvider", ({ detail }) => {
    announced.set(detail.info.uuid, { name: detail.info.name, provider: detail.provider });
    update();
  });
  addEventListener("ethereum#initialized", update, { once: true });
  dispatchEvent(new Event("eip6963:requestProvider"));
  update();
}
