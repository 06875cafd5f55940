// A checkout page with React and wagmi. Your server has created the intent and makes a client token of it; the page has no key. The origin of the page
// must be among those that your account has listed.
import { createClient, type TokenClient, type Transfer } from '@transfer-intents/client'
import { send } from '@transfer-intents/client/viem'
import { QueryClient, QueryClientProvider, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import { createConfig, http, injected, useConnect, useConnection, useSwitchChain, useWalletClient, WagmiProvider } from 'wagmi'
import { sepolia } from 'wagmi/chains'

const baseUrl = 'https://intents.example.com'
const config = createConfig({ chains: [sepolia], connectors: [injected()], transports: { [sepolia.id]: http() } })
const queries = new QueryClient()

// tokenOf asks your server for a token, and for another one a minute before that expires.
function tokenOf(id: string): () => Promise<string> {
  let held = { token: '', expiresAt: '' }
  return async () => {
    if (!(Date.parse(held.expiresAt) > Date.now() + 60_000)) {
      const answer = await fetch(`/checkout/${id}/client-token`, { method: 'POST' })
      if (!answer.ok) throw new Error(`no token: ${answer.status}`)
      held = await answer.json()
    }
    return held.token
  }
}

// usePayment checks the intent, has the wallet send it, reports its hash and shows the record as it is then.
function usePayment(client: TokenClient, transfer: Transfer | undefined) {
  const { data: wallet } = useWalletClient()
  const cache = useQueryClient()
  const payment = useMutation({
    mutationFn: async () => {
      if (!wallet || !transfer) throw new Error('connect a wallet first')
      const { ok, checks } = await client.transfers.preflight(transfer.id)
      if (!ok) throw new Error(checks.filter((check) => !check.ok).map(({ detail }) => detail).join('; '))
      return send(wallet, transfer, { client })
    },
    onSuccess: (record) => cache.setQueryData(['transfer', record.id], record),
  })
  return { payment, ready: wallet !== undefined }
}

function Checkout({ id }: { id: string }) {
  const client = useMemo(() => createClient({ baseUrl, clientToken: tokenOf(id) }), [id])
  const { data: transfer, error } = useQuery({
    queryKey: ['transfer', id], queryFn: ({ signal }) => client.transfers.get(id, { signal }),
    refetchInterval: ({ state }) => state.data?.ended ? false : 5_000,
  })
  const { chainId, isConnected } = useConnection()
  const connect = useConnect()
  const switchChain = useSwitchChain()
  const { payment, ready } = usePayment(client, transfer)
  if (!transfer) return <p>{error ? error.message : 'Loading…'}</p>
  const { source, destination, status } = transfer
  return (
    <section>
      <p>Pay {source.amount} of {source.token} to {destination.account}: {status}</p>
      {!isConnected && <button onClick={() => connect.mutate({ connector: injected() })}>Connect a wallet</button>}
      {isConnected && chainId !== sepolia.id && <button onClick={() => switchChain.mutate({ chainId: sepolia.id })}>Switch to Sepolia</button>}
      {status === 'created' && transfer.tx && (
        <button disabled={!ready || chainId !== sepolia.id || payment.isPending} onClick={() => payment.mutate()}>Pay</button>
      )}
      {payment.error && <p role="alert">{payment.error.message}</p>}
    </section>
  )
}

export const App = ({ id }: { id: string }) => (
  <WagmiProvider config={config}><QueryClientProvider client={queries}><Checkout id={id} /></QueryClientProvider></WagmiProvider>
)
