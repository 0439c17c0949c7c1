'use strict';
// A one-time link: its secret is in the fragment, which this page takes out of the address before anything else.

const what = document.querySelector('#what');
const command = document.querySelector('code');
const form = document.querySelector('form');
const [ticketField, pathField] = form.querySelectorAll('input');

function refuse(message, hint) {
  form.hidden = true;
  what.textContent = message;
  command.textContent = hint;
}

async function describe(ticket, path) {
  const answer = await fetch('/.svc/describe', { method: 'POST', body: new URLSearchParams({ ticket }) });
  const record = await answer.json();
  if (!answer.ok) {
    const { message, hint = '' } = record.error;
    refuse(`${message[0].toUpperCase()}${message.slice(1)}.`, hint);
    return;
  }
  what.textContent = `${record.port} of the workspace ${record.workspace}, as ${record.user}`;
  ticketField.value = ticket;
  pathField.value = path;
  form.hidden = false;
  form.querySelector('button').focus();
}

function begin() {
  const [, ticket, path = '/'] = /^#(svc_tkt_[0-9a-f]+)(\/.*)?$/.exec(location.hash) || [];
  history.replaceState(null, '', location.pathname);
  if (ticket) {
    describe(ticket, path).catch(() => refuse('The service does not answer. Open the link again.', ''));
  } else {
    refuse('This address has no link in it. A link is made on the host:', document.body.dataset.command);
  }
}

window.addEventListener('hashchange', begin); // another link in the same tab, which loads nothing
begin();
